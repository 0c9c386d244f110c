"""`vanilla-transformer compare`, from a checkout."""

from hf_vanilla_transformer.commands.compare import main


if __name__ == "__main__":
    main()
